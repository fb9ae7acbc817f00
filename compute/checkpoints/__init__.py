"""Models from folders: config.json, model.safetensors, tokenizer.json, README.md (the card)."""

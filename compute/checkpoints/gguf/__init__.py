"""Models from one .gguf file: its header at load, its tensors when they are asked for.

`loading.load` is the way in.
"""

"""What a config costs, from its fields alone, in whole numbers, each with its formula."""

"""A state as the sum of the parts that wrote it, and what each part gives a logit."""

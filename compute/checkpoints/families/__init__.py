"""The families of checkpoints, one small file each."""

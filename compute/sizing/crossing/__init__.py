"""Where one cost overtakes another."""

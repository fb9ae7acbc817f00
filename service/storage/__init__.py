"""Models on disk: where they lie, which are kept in memory, how they are uploaded."""

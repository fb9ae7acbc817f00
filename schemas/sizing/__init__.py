"""What sizing is asked, and what it answers."""

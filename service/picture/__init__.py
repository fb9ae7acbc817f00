"""An answer as a picture in the terminal: built from the answer alone, as the service gives it."""

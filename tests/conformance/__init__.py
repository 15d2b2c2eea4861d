"""One suite for each port, which every adapter passes."""

"""What several test folders share and pytest's fixtures cannot hold."""

"""What several tests share and pytest fixtures cannot give."""

"""What an experiment consists of: from a config to settings and jobs."""

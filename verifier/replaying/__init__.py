"""Models that are run and not read: an interval for every text, from what the deployed model answered."""

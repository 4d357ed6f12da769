"""What a certificate says, and of which models and trees screening speaks."""

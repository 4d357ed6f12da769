"""Language models of others, from local folders: what they propose, never what they answer."""

"""Parts of one search that copies of this process do on cores which have nothing else to do."""

"""The five papers: each one's protocol as commands that anybody can repeat, and its tables with what is proved."""

"""Defences trained, certified, attacked and measured by the commands that users have, and the table of them."""

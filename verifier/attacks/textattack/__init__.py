"""The CSV logs of TextAttack, written and read."""

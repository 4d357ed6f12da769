"""How cost grows: texts of every size, and the laws of what was measured."""

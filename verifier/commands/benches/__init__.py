"""Commands that measure: `swapproof bench ...`, one file each."""

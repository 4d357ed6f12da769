"""What a bundle tells whoever gets it: how to check it, and what is proved by that."""

HOW_TO_CHECK = """# How to check this bundle

`run/` holds a text classifier (`model.onnx`), its texts (`texts.jsonl`), what may be swapped in each
(`spaces.jsonl`), and certificates: how many words of a text must be swapped before the classifier changes its answer,
or in how many sentences with so many swaps it keeps it. FORMAT.md says what is claimed, what is not, and why it
holds. Three commands:

    python3 -I -S check.py run
    sha256sum *.py
    swapproof bundle --verify THIS_FILE.zip --public-key THEIR_KEY.pub.pem

1. Checks every certificate in exact arithmetic with Python's standard library alone. Believe it only when its last
   line is `accepted N of N`, with the N that you expect (below). Without Python: open check.html in a browser and
   drop the folder `run` on it.
2. Compare with the SHA-256 of these twelve, which lie in `proofs` of swapproof, in a copy of swapproof that
   you trust. Whoever made this bundle could have put other programs here: better, run your own copy on `run`.
3. Does all of it: that the archive holds the files that were vouched for, byte for byte, who signed, that accounts
   and certificates agree, and the certificates, with the checker of your own installation. Ask the signer for the
   fingerprint of their key by another way than this bundle.

Where a copy of swapproof comes from decides what the second and third command are worth. Take it from people whom you
trust, or from source that you have read, at a version that you name yourself: not from whoever made this bundle, and
not because a package index happens to have something of this name. Checking signatures also needs the package
`cryptography`. With no copy at all, the twelve are plain Python, written to be read.

## Which N

The checker counts the certificates that it finds; it does not know how many there should be. N must be the number of
lines of `run/texts.jsonl` (`wc -l run/texts.jsonl`), one text each, if every text is said to be certified. A text
without a certificate is one of which nothing is proved: its line in `run/results.jsonl` says `"certificate": null`.
Count these, and expect N to be so much less.

`Merkle root ...`, the line before the last, is one hash of all certificates with their names (FORMAT.md, section 2).
It is printed when all of them were accepted, and must be what `run/certificates/root` and the signed statement say.
Two people who see the same root have checked the same certificates, no fewer: write it down beside the N.

## What is proved, and what is the producer's account

Proved is what the sentences say that the checker prints: of this model, these token ids, at that level. The
certificates bind the model, the vocabulary, the texts and the listed choices by SHA-256. The third command refuses a
`run/results.jsonl` or `run/summary.json` that claims more than the certificates, and compares texts, swaps, labels
and versions with the files beside them. All else is the producer's account, which nothing here proves:

* that these are the texts that matter, all of them, with the right labels; the order of texts and lines;
* that the listed choices are synonyms, where they came from, and what was left out of them and why;
* that the deployed system turns text into token ids as `run/task.toml` says: `lowercase`, `split`, `length`, padding
  and unknown words; and that it runs this model;
* what the model answers in onnxruntime, and how closely that agrees with what was read from it: the level `replay`,
  which texts it answers rightly where no certificate says so, and which ones rounding decides;
* engines, seconds, numbers of evaluations and requests, why a text stayed open, remarks, what solvers claimed;
* versions, the operating system, and the original names of files;
* of sampled shares, how the samples fell, and so every interval made of them.

Who has the run folder itself, with its store.sqlite, can have `swapproof check` run the model and find out what it
answers.

Whoever gets this bundle gets the whole model, its vocabulary, every text with its label, and every swap.
`run/manifest.json` names the files that the run was made from, without their folders, the versions it was made with,
and the operating system.
"""

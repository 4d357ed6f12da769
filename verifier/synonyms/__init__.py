"""Synonyms: where they come from, which are kept, and the frozen spaces they give."""

from .embeddings import Embeddings, nearest_words, read_glove, read_matrix, read_vectors
from .filters import FILTERS, Antonyms, Filter, MaxPerWord, StopWords
from .freezing import Freezing, FrozenText, freeze
from .graph import digest, graph_of, neighbours, symmetric, table_of, without_antonyms
from .part_of_speech import SamePartOfSpeech, same_part_of_speech
from .review import review_table
from .similarity import SentenceSimilarity, sentence_similarity
from .sources import Source, merged, raw_wordnet, read_antonyms, read_table
from .spaces_file import read_spaces, write_spaces

__all__ = [
    "FILTERS",
    "Antonyms",
    "Embeddings",
    "Filter",
    "Freezing",
    "FrozenText",
    "MaxPerWord",
    "SamePartOfSpeech",
    "SentenceSimilarity",
    "Source",
    "StopWords",
    "digest",
    "freeze",
    "graph_of",
    "merged",
    "nearest_words",
    "neighbours",
    "raw_wordnet",
    "read_antonyms",
    "read_glove",
    "read_matrix",
    "read_spaces",
    "read_table",
    "read_vectors",
    "review_table",
    "same_part_of_speech",
    "sentence_similarity",
    "symmetric",
    "table_of",
    "without_antonyms",
    "write_spaces",
]

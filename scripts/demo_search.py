#!/usr/bin/env python3
"""Finds, for every paragraph of this machine's own documentation, the paragraphs that say nearly the same.

An ordinary NumPy program that knows nothing of any GPU: TF-IDF vectors in single precision, then the cosine similarity
of every paragraph with every other, a block of paragraphs at a time. The time goes into `block @ vectors.T`.

usage: demo_search.py RESULT.npz [QUESTION]
"""
import re
import sys
import time
from collections import Counter
from glob import glob
from pathlib import Path

import numpy

PARAGRAPHS = 8192
TERMS = 4096
BLOCK = 2048
WORD = re.compile(r"[a-z][a-z_]{2,}")
DOCSTRING = re.compile(r'"""(.*?)"""', re.S)


def texts():
    """Licences and other package documentation, and the docstrings of installed Python modules."""
    for pattern in ("/usr/share/common-licenses/*", "/usr/share/doc/*/copyright"):
        for path in sorted(glob(pattern)):
            yield Path(path).read_text(errors="replace")
    for pattern in ("/usr/lib/python3/dist-packages/numpy/**/*.py", "/usr/lib/python3/dist-packages/sklearn/**/*.py",
                    "/usr/lib/python3.*/*.py"):
        for path in sorted(glob(pattern, recursive=True)):
            for docstring in DOCSTRING.findall(Path(path).read_text(errors="replace")):
                yield docstring


def read_paragraphs():
    seen = {}
    for text in texts():
        for paragraph in re.split(r"\n\s*\n", text):
            paragraph = " ".join(paragraph.split())
            if len(paragraph) >= 120:
                seen.setdefault(paragraph, None)
    every = list(seen)
    step = max(1, len(every) // PARAGRAPHS)  # spread over all sources
    return every[::step][:PARAGRAPHS]


def tf_idf(counts, terms, document_frequency, documents):
    matrix = numpy.zeros((len(counts), len(terms)), dtype=numpy.float32)
    for row, count in enumerate(counts):
        for word, times in count.items():
            column = terms.get(word)
            if column is not None:
                matrix[row, column] = (1 + numpy.log(times)) * numpy.log(documents / document_frequency[word])
    lengths = numpy.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / numpy.maximum(lengths, numpy.float32(1e-6))


def main(result, question="may I modify the software and sell copies of it"):
    paragraphs = read_paragraphs()
    counts = [Counter(WORD.findall(paragraph.lower())) for paragraph in paragraphs]
    document_frequency = Counter(word for count in counts for word in count)
    # The commonest words tell nothing; the next TERMS are the vocabulary.
    common = sorted(document_frequency, key=lambda word: (-document_frequency[word], word))
    terms = {word: column for column, word in enumerate(common[20:20 + TERMS])}
    vectors = tf_idf(counts, terms, document_frequency, len(paragraphs))
    print(f"{vectors.shape[0]} paragraphs, {vectors.shape[1]} terms, NumPy {numpy.__version__}")

    begin = time.perf_counter()
    nearest = numpy.empty(len(paragraphs), dtype=numpy.int64)
    similarity = numpy.empty(len(paragraphs), dtype=numpy.float32)
    blocks = []
    for start in range(0, len(paragraphs), BLOCK):
        block = vectors[start:start + BLOCK]
        one = time.perf_counter()
        products = block @ vectors.T
        blocks.append(time.perf_counter() - one)
        rows = numpy.arange(len(block))
        products[rows, start + rows] = -1  # itself
        nearest[start:start + BLOCK] = products.argmax(axis=1)
        similarity[start:start + BLOCK] = products.max(axis=1)
    print(f"all against all in {time.perf_counter() - begin:.3f} s, of which matrix products "
          f"{sum(blocks):.3f} s ({', '.join(f'{t:.3f}' for t in blocks)})")

    asked = tf_idf([Counter(WORD.findall(question.lower()))], terms, document_frequency, len(paragraphs))
    answers = (vectors @ asked[0]).argsort()[::-1][:2]
    print(f"asked: {question}")
    for answer in answers:
        print(f"  found: {paragraphs[answer][:100]}...")
    numpy.savez(result, nearest=nearest, similarity=similarity, seconds=sum(blocks))


if __name__ == "__main__":
    main(*sys.argv[1:])

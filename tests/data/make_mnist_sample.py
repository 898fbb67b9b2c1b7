#!/usr/bin/env python3
"""Draws tests/data/mnist-sample: digits of a 5x7 font in MNIST's four files, small.

The images are gzipped and the labels plain, so that a reader meets both. Run again, it writes the
same content.
"""
import gzip
import pathlib
import random
import struct

SIZE = 28
SCALE = 3  # a dot of the font is 3x3 pixels: digits are 15x21
FONT = {
    0: (".###.", "#...#", "#..##", "#.#.#", "##..#", "#...#", ".###."),
    1: ("..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###."),
    2: (".###.", "#...#", "....#", "...#.", "..#..", ".#...", "#####"),
    3: (".###.", "#...#", "....#", "..##.", "....#", "#...#", ".###."),
    4: ("...#.", "..##.", ".#.#.", "#..#.", "#####", "...#.", "...#."),
    5: ("#####", "#....", "####.", "....#", "....#", "#...#", ".###."),
    6: ("..##.", ".#...", "#....", "####.", "#...#", "#...#", ".###."),
    7: ("#####", "....#", "...#.", "..#..", ".#...", ".#...", ".#..."),
    8: (".###.", "#...#", "#...#", ".###.", "#...#", "#...#", ".###."),
    9: (".###.", "#...#", "#...#", ".####", "....#", "...#.", ".##.."),
}


def draw(digit, generator):
    """One image: the glyph shifted, each dot of it in its own shade."""
    top = generator.randrange(SIZE - 7 * SCALE + 1)
    left = generator.randrange(SIZE - 5 * SCALE + 1)
    pixels = bytearray(SIZE * SIZE)
    for row, dots in enumerate(FONT[digit]):
        for column, dot in enumerate(dots):
            if dot != "#":
                continue
            shade = generator.randrange(160, 256)
            for y in range(top + row * SCALE, top + (row + 1) * SCALE):
                for x in range(left + column * SCALE, left + (column + 1) * SCALE):
                    pixels[y * SIZE + x] = shade
    return bytes(pixels)


def write(folder, prefix, count, generator):
    labels = [i % 10 for i in range(count)]
    generator.shuffle(labels)
    images = b"".join(draw(digit, generator) for digit in labels)
    images = struct.pack(">4B3I", 0, 0, 8, 3, count, SIZE, SIZE) + images
    packed = gzip.compress(images, compresslevel=9, mtime=0)
    (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(packed)
    content = struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(labels)
    (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(content)


def main():
    folder = pathlib.Path(__file__).parent / "mnist-sample"
    folder.mkdir(exist_ok=True)
    generator = random.Random(1)
    write(folder, "train", 200, generator)
    write(folder, "t10k", 50, generator)


if __name__ == "__main__":
    main()

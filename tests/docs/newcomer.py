#!/usr/bin/env python3
"""A newcomer types the commands of the README and of docs/recipes.md, with digits, photographs, images and masks of their own:
the blocks of shell commands that follow the line <!-- typed by tests/docs/newcomer.py -->, as they stand, in a folder that
has such files. Each must end well and leave what it promises.
Usage: newcomer.py SOURCE_DIR BIN_DIR"""
import gzip
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

root, programs = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
MARK = '<!-- typed by tests/docs/newcomer.py -->\n```sh\n'
PAGES = {'README.md': 1, 'docs/recipes.md': 3}  # and how many blocks each has
CELLS = 12  # images: Pytorch-UNet's settings hold a tenth of them out
TIMEOUT = 900  # seconds that a block may take
random.seed(5)


def write_png(path, rows, channels):
    path.parent.mkdir(parents=True, exist_ok=True)
    chunk = lambda name, body: struct.pack('>I', len(body)) + name + body + struct.pack('>I', zlib.crc32(name + body))
    head = struct.pack('>IIBBBBB', len(rows[0]) // channels, len(rows), 8, 2 if channels == 3 else 0, 0, 0, 0)
    pixels = zlib.compress(b''.join(b'\0' + bytes(row) for row in rows))
    path.write_bytes(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', pixels) + chunk(b'IEND', b''))


def write_digits(folder):
    """28 x 28 pixels; digit d is a bar at a place of its own."""
    folder.mkdir(parents=True)
    for part, count in (('train', 300), ('t10k', 60)):
        images, labels = bytearray(), bytearray()
        for number in range(count):
            digit = number % 10
            labels.append(digit)
            top, left = random.randrange(3), 2 + 2 * digit + random.randrange(2)
            for y in range(28):
                for x in range(28):
                    images.append(255 if left <= x < left + 4 and top <= y - 2 < 20 else random.randrange(30))
        head = struct.pack('>IIII', 2051, count, 28, 28), struct.pack('>II', 2049, count)
        for name, body in (('images-idx3', head[0] + images), ('labels-idx1', head[1] + labels)):
            (folder / f'{part}-{name}-ubyte.gz').write_bytes(gzip.compress(bytes(body)))


def write_photographs(folder):
    for kind, colour in (('cat', (200, 90, 40)), ('dog', (60, 160, 90)), ('owl', (70, 80, 190))):
        for number in range(8):
            width, height = random.randrange(80, 120), random.randrange(80, 120)
            rows = [[min(255, level + random.randrange(60)) for _ in range(width) for level in colour] for _ in range(height)]
            write_png(folder / kind / f'{number}.png', rows, 3)


def write_cells(folder):
    """Grey images of a bright disc, and masks of 0 and 255 that show where it is."""
    for number in range(CELLS):
        side, radius = 96, random.randrange(15, 35)
        x0, y0 = random.randrange(30, 66), random.randrange(30, 66)
        inside = lambda x, y: (x - x0) ** 2 + (y - y0) ** 2 < radius**2
        grey = [[(150 if inside(x, y) else 60) + random.randrange(50) for x in range(side)] for y in range(side)]
        write_png(folder / 'imgs' / f'{number}.png', grey, 1)
        write_png(folder / 'masks' / f'{number}.png', [[255 * inside(x, y) for x in range(side)] for y in range(side)], 1)


def blocks_of(page):
    return re.findall(re.escape(MARK) + r'(.*?)```', (root / page).read_text(), re.S)


def typed(page, number, block):
    """Types a block, in a folder that holds the newcomer's files and, as a checkout has, build/release/bin."""
    with tempfile.TemporaryDirectory(prefix='lockstep-newcomer-') as name:
        folder = Path(name)
        write_digits(folder / 'digits')
        write_photographs(folder / 'photos')
        write_cells(folder / 'cells')
        (folder / 'build/release').mkdir(parents=True)
        (folder / 'build/release/bin').symlink_to(programs)
        environment = {**os.environ, 'PATH': f'{programs}:{os.environ["PATH"]}'}
        shell = ['bash', '-e', '-u', '-x', '-c', block]
        result = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
        if result.returncode != 0:
            said = f'{result.stdout[-2000:]}\n{result.stderr[-3000:]}'
            sys.exit(f'{page}, block {number}: exit code {result.returncode}\n{said}')
        check(page, folder, block)


def check(page, folder, block):
    """What the commands promise is there."""
    trained = len(re.findall(r'^lockstep train (?!--resume)', block, re.M))
    finals = [json.loads(path.read_text()) for path in folder.glob('runs/*/final.json')]
    assert len(finals) == trained, f'{page}: {trained} runs were begun, and {len(finals)} ended'
    for words in re.findall(r'^lockstep (?:eval|predict|export) [^#\n]*', block, re.M):
        for name in re.findall(r'[\w./-]+\.(?:png|csv|onnx)\b', words):
            assert (folder / name).stat().st_size > 100, f'{page}: {words} left no {name}'
        if out := re.search(r'predict runs/unet-\S+ .*-o (\S+)', words):
            masks = list((folder / out[1]).glob('*_mask.png'))
            assert len(masks) == CELLS, f'{page}: {words} left {len(masks)} masks'


for page, count in PAGES.items():
    blocks = blocks_of(page)
    assert len(blocks) == count, f'{page}: {len(blocks)} blocks are typed, not {count}'
    for number, block in enumerate(blocks, 1):
        assert 'lockstep train' in block, f'{page}: nothing is trained in block {number}'
        typed(page, number, block)
print('a newcomer gets what the docs promise')

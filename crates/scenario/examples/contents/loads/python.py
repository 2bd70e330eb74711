"""Memory of a Python program: syntax trees, dictionaries from JSON, objects with slots, strings and matrices."""

import ast
import collections
import glob
import json
import os
import time


class Point:
    __slots__ = ("x", "y", "n")


texts = [open(path, errors="replace").read() for path in sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:60]]
trees = [ast.parse(text) for text in texts]
words = [collections.Counter(text.split()) for text in texts]
rows = [
    {"id": i, "name": f"user{i * 7919 % 100003}", "score": i * 0.37, "tags": [f"a{i % 50}", f"b{i % 13}"], "on": i % 3 == 0}
    for i in range(60000)
]
index = {row["name"]: row for row in json.loads(json.dumps(rows))}
matrix = [[float(i * j % 97) / 7 for j in range(100)] for i in range(1000)]
points = []
for i in range(100000):
    point = Point()
    point.x, point.y, point.n = i * 1.5, i ^ 12345, None
    points.append(point)
print("ready", flush=True)
time.sleep(600)

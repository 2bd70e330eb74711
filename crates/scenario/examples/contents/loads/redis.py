"""Commands that fill a Redis: sessions as JSON, hashes, sorted sets, lists, pages of HTML, counters. For redis-cli --pipe."""

import hashlib
import sys

FIRST = "anna bert carla dirk eva felix greta hans ines jan".split()
LAST = "smith jones garcia mueller rossi tanaka novak silva".split()


def put(*words):
    words = [str(word).encode() for word in words]
    head = b"*%d\r\n" % len(words)
    sys.stdout.buffer.write(head + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))


for i in range(40000):
    key, name = hashlib.sha256(b"%d" % i).hexdigest(), f"{FIRST[i % 10]} {LAST[i * 7 % 8]}"
    cart = ",".join('{"sku":%d,"n":%d}' % (int(key[j : j + 5], 16), j) for j in range(i % 6))
    session = '{"user":%d,"name":"%s","created":%d,"token":"%s","roles":["reader","%s"],"cart":[%s]}'
    put("SET", f"session:{key[:32]}", session % (i, name, 1700000000 + i * 37, key[32:], "guest" if i % 5 else "editor", cart))
    mail = f"{name.replace(' ', '.')}{i}@example.org"
    put("HSET", f"user:{i}", "name", name, "mail", mail, "visits", i * 7919 % 1000, "last", 1700000000 + i * 61)
    put("ZADD", f"board:{i % 20}", i * 7919 % 100003, f"user:{i}")
    put("LPUSH", f"log:{i % 500}", f"2026-11-{i % 28 + 1:02} {i % 24:02}:{i % 60:02} GET /item/{i * 31 % 9973} 200 {i * 17 % 5000}")
    if i % 4 == 0:
        words = " ".join(FIRST[i * k % 10] for k in range(1, 60))
        put("SETEX", f"page:{i}", 86400, f"<html><body><h1>Item {i}</h1><p>{words}</p></body></html>")
    if i % 3 == 0:
        put("INCR", f"count:{i}")

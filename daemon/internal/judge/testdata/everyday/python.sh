# A package of Python with tests for unittest, a virtual environment and some data.
mkdir -p inventory tests data scripts docs
cat > pyproject.toml <<'EOF'
[project]
name = "inventory"
version = "0.3.0"
requires-python = ">=3.9"

[tool.ruff]
line-length = 100
EOF
cat > inventory/__init__.py <<'EOF'
"""Counts what is in stock."""
from .stock import Stock

__version__ = "0.3.0"
__all__ = ["Stock"]
EOF
cat > inventory/stock.py <<'EOF'
import csv
from dataclasses import dataclass, field


@dataclass
class Stock:
    """How many there are of each thing."""

    counts: dict = field(default_factory=dict)

    def add(self, name: str, count: int = 1) -> int:
        if count < 0:
            raise ValueError("count is negative")
        self.counts[name] = self.counts.get(name, 0) + count
        return self.counts[name]

    @classmethod
    def load(cls, path):
        with open(path, newline="") as f:
            return cls({row["name"]: int(row["count"]) for row in csv.DictReader(f)})

    def total(self) -> int:  # TODO: weights
        return sum(self.counts.values())
EOF
cat > inventory/__main__.py <<'EOF'
import sys

from . import Stock

if __name__ == "__main__":
    print(Stock.load(sys.argv[1] if len(sys.argv) > 1 else "data/stock.csv").total())
EOF
touch tests/__init__.py
cat > tests/test_stock.py <<'EOF'
import http.server
import tempfile
import threading
import unittest
import urllib.request

from inventory import Stock


class StockTest(unittest.TestCase):
    def test_add(self):
        s = Stock()
        self.assertEqual(s.add("pen", 2), 2)
        self.assertRaises(ValueError, s.add, "pen", -1)

    def test_load(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
            f.write("name,count\npen,3\n")
            f.flush()
            self.assertEqual(Stock.load(f.name).total(), 3)

    def test_serves(self):
        s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        s.RequestHandlerClass.log_message = lambda *a: None
        t = threading.Thread(target=s.handle_request)
        t.start()
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://127.0.0.1:%d/" % s.server_port).read()
        t.join()
        s.server_close()
EOF
printf 'name,count,price\npen,12,1.50\nink,4,7.00\npaper,100,0.05\n' > data/stock.csv
printf '{"name": "pen", "tags": ["blue", "thin"]}\n' > data/pen.json
cat > scripts/report.py <<'EOF'
import csv, json, sys
rows = list(csv.DictReader(open("data/stock.csv")))
json.dump({r["name"]: float(r["price"]) * int(r["count"]) for r in rows}, sys.stdout, indent=1)
EOF
cat > scripts/export.py <<'EOF'
import pathlib, sqlite3
pathlib.Path("out").mkdir(exist_ok=True)
db = sqlite3.connect("out/stock.db")
db.execute("create table if not exists stock (name text, count int)")
db.execute("delete from stock")
db.executemany("insert into stock values (?, ?)", [("pen", 12), ("ink", 4)])
db.commit()
EOF
printf 'test:\n\tpython3 -m unittest -q\nreport: out\n\tpython3 scripts/report.py > out/report.json\nout:\n\tmkdir -p out\nclean:\n\trm -rf out build dist\n.PHONY: test report clean\n' > Makefile
printf '__pycache__/\n.venv/\nout/\n*.pyc\n' > .gitignore
printf 'requests==2.31.0\n' > requirements.txt
printf '# inventory\n\nCounts.\n' > README.md
python3 -m venv --without-pip .venv

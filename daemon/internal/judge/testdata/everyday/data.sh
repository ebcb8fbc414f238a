# Texts, tables and shell scripts.
mkdir -p docs/guide data scripts templates logs
printf '# Guide\n\nSee [setup](setup.md).\n\n## Use\n\nTODO: examples\n' > docs/guide/index.md
printf '# Setup\n\n1. Get it\n2. Run it\n' > docs/guide/setup.md
printf '# Handbook\n\n- [Guide](docs/guide/index.md)\n' > README.md
printf '# Changes\n\n## 2.0\n\n- tables\n\n## 1.0\n\n- texts\n' > CHANGELOG.md
printf 'id,city,people\n1,Oslo,709000\n2,Bergen,286000\n3,Bergen,286000\n4,Hamar,32000\n' > data/cities.csv
printf '[{"id":1,"name":"Ann","langs":["no","en"]},{"id":2,"name":"Bo","langs":["da"]}]\n' > data/people.json
printf 'title: Handbook\nlang: en\n' > data/site.yml
printf '<h1>@TITLE@</h1>\n<p>@BODY@\n' > templates/page.html
printf '2024-01-01 INFO start\n2024-01-01 WARN slow 120ms\n2024-01-02 ERROR lost\n2024-01-02 INFO stop\n' > logs/app.log
cat > scripts/render.sh <<'EOF'
#!/usr/bin/env bash
# Renders the guide into site/.
set -euo pipefail
mkdir -p site
for f in docs/guide/*.md; do
	name=$(basename "$f" .md)
	sed -e "s/@TITLE@/$name/" -e "s/@BODY@/$(head -1 "$f")/" templates/page.html > "site/$name.html"
done
EOF
printf '#!/bin/sh\n# Counts words.\ncat docs/guide/*.md | wc -w\n' > scripts/words.sh
printf 'greet() { echo "hello $1"; }\n' > scripts/lib.sh
chmod +x scripts/render.sh scripts/words.sh
printf 'site:\n\t./scripts/render.sh\nwords:\n\t./scripts/words.sh\nclean:\n\trm -rf site\n.PHONY: site words clean\n' > Makefile
printf 'site/\n*.tmp\n*.bak\n' > .gitignore

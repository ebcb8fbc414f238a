# A Go module with two packages, a command and tests, and nothing to fetch.
mkdir -p cmd/shop internal/cart internal/price/testdata docs scripts
cat > go.mod <<'EOF'
module example.com/shop

go 1.22
EOF
cat > internal/cart/cart.go <<'EOF'
// Package cart sums up what is bought.
package cart

import "example.com/shop/internal/price"

// An Item is some of one thing.
type Item struct {
	Name  string
	Count int
	Each  price.Cents
}

// Total returns the price of all items. TODO: discounts
func Total(items []Item) price.Cents {
	var sum price.Cents
	for _, it := range items {
		sum += it.Each * price.Cents(it.Count)
	}
	return sum
}
EOF
cat > internal/cart/cart_test.go <<'EOF'
package cart

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTotal(t *testing.T) {
	if got := Total([]Item{{"pen", 2, 150}, {"ink", 1, 700}}); got != 1000 {
		t.Errorf("got %d", got)
	}
}

func TestServed(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	r, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
}

func BenchmarkTotal(b *testing.B) {
	for i := 0; i < b.N; i++ {
		Total([]Item{{"pen", 2, 150}})
	}
}
EOF
cat > internal/price/price.go <<'EOF'
// Package price formats amounts.
package price

import "fmt"

// Cents is an amount of money.
type Cents int64

//go:generate sh -c "date -u -d @0 +%Y > year.txt"

func (c Cents) String() string { return fmt.Sprintf("%d.%02d", c/100, c%100) }
EOF
cat > internal/price/price_test.go <<'EOF'
package price

import (
	"os"
	"testing"
)

func TestString(t *testing.T) {
	want, err := os.ReadFile("testdata/want.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := Cents(1234).String() + "\n"; got != string(want) {
		t.Errorf("got %q", got)
	}
}
EOF
echo 12.34 > internal/price/testdata/want.txt
cat > cmd/shop/main.go <<'EOF'
package main

import (
	"fmt"
	"os"

	"example.com/shop/internal/cart"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--fail" {
		os.Exit(3)
	}
	fmt.Println(cart.Total([]cart.Item{{Name: "pen", Count: 2, Each: 150}}))
}
EOF
cat > Makefile <<'EOF'
BIN := bin/shop
.PHONY: all test vet clean help
all: $(BIN)
$(BIN): $(wildcard cmd/shop/*.go internal/*/*.go)
	go build -o $@ ./cmd/shop
test:
	go test ./...
vet:
	go vet ./...
clean:
	rm -rf bin
help:
	@grep -E '^[a-z]+:' Makefile
EOF
printf '/bin/\n*.out\n*.prof\n' > .gitignore
printf '# shop\n\nSums up carts.\n\n    make test\n' > README.md
printf '# Design\n\nCarts hold items.\n' > docs/design.md
printf '#!/bin/sh\nset -e\ngo vet ./...\necho checked\n' > scripts/check.sh; chmod +x scripts/check.sh

// Command sublet lends your shell to AI agents, on your terms.
package main

import (
	"os"

	"sublet/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }

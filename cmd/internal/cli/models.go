package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

func (a *app) models() *cobra.Command {
	var asJSON bool
	c := a.asks("models", "List the models of every provider", cobra.NoArgs, func(ctx context.Context, c *client.Conn, _ []string) error {
		reply, err := wire.Call(ctx, c, &wire.ModelsRequest{})
		if err != nil {
			return err
		}
		for _, f := range reply.Faults {
			a.printNotice(f.Provider, f.Message, f.Hint)
		}
		if asJSON {
			return a.printElements(reply, "models")
		}
		w := a.table("MODEL\tWINDOW\tPRICE IN/OUT\tTAKES")
		for _, m := range reply.Models {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", oneLine(m.Name), tokens(m.ContextWindow), price(m), takes(m))
		}
		return w.Flush()
	})
	return withJSON(explained(c, "models asks every provider in the settings which models it has. `model = \"NAME\"` in the settings chooses one for good,\n"+
		"`sublet ask --model NAME` for one question, /model NAME in a window for those that follow.", ""), &asJSON, "model")
}

func tokens(n int) string {
	if n == 0 {
		return "?"
	}
	return fmt.Sprintf("%dk", n/1000)
}

// price is in US dollars for a million tokens.
func price(m wire.Model) string {
	if m.PriceInput == nil || m.PriceOutput == nil {
		return "?"
	}
	return fmt.Sprintf("$%.2f/$%.2f", *m.PriceInput, *m.PriceOutput)
}

// takes lists what a model is known to accept besides text.
func takes(m wire.Model) string {
	var list []string
	for _, t := range []struct {
		name string
		has  *bool
	}{{"images", m.Images}, {"tools", m.Tools}, {"thinking", m.Thinking}} {
		switch {
		case t.has == nil:
			list = append(list, t.name+"?")
		case *t.has:
			list = append(list, t.name)
		}
	}
	return strings.Join(list, " ")
}

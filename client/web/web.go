// Package web is the operator's front end: operator.js, a module without dependencies for node and browsers, and the page
// that `sublet serve operator --ui` serves, which uses it. What the server does is left to client/internal/gateway/operator.
package web

import "embed"

// Files are the page and the module, as the server has them at its root.
//
//go:embed index.html page.js page.css operator.js operator.d.ts
var Files embed.FS

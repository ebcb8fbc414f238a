// Package mask finds secrets in text and replaces them: keys of known formats, values whose name says that they are a
// secret, and values that the process was given. It decides nothing about commands or files.
package mask

package term

// Size of a terminal, in cells and pixels.
type Size struct{ Cols, Rows, PixelWidth, PixelHeight int }

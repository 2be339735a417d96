package weir

// openFilesLimit: Windows has none that matters.
func openFilesLimit() int { return 0 }

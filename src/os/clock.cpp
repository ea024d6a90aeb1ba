namespace gemmhoist {}

/* Something to preload that is nothing else. */
int gemmhoist_test_probe(void);
int gemmhoist_test_probe(void) {
  return 1;
}

/* A library with thread-local storage enough to use up what the loader keeps spare. */
__thread char tls_heavy[TLS_BYTES];
char* tls_heavy_address(void);
char* tls_heavy_address(void) {
  return tls_heavy;
}

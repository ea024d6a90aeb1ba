/* A library whose constructor, under the loader's lock, calls back into the program. */
void multiply_in_constructor(void);
__attribute__((constructor)) static void on_load(void) {
  multiply_in_constructor();
}

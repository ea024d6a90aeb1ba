// Load, fork and end of the process. Loading costs microseconds: LD_PRELOAD puts us into every process of a
// shell script, nearly all of which never multiply.
#include <pthread.h>

#include "dispatch/dispatch.hpp"
#include "fallback/fallback.hpp"

namespace gemmhoist::abi {
namespace {

void before_fork() {
  fallback::before_fork();
}

void in_forking_parent() {
  fallback::after_fork_in_parent();
}

void in_forked_child() {
  fallback::after_fork_in_child();
  dispatch::on_fork_child();
}

// The handler cannot outlive its code: the library is linked -z nodelete, and a dlclose leaves it where it
// is.
[[gnu::constructor]] void on_load() {
  dispatch::on_load();
  (void)pthread_atfork(before_fork, in_forking_parent, in_forked_child);
}

[[gnu::destructor]] void on_unload() {
  dispatch::on_unload();
}

}  // namespace
}  // namespace gemmhoist::abi

#include "shared_object.hpp"

#include <dlfcn.h>
#include <link.h>

namespace gemmhoist::bench {

SharedObject::SharedObject(const std::vector<std::string>& candidates) {
  for (const auto& candidate : candidates) {
    if (candidate.empty()) continue;
    handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      const char* reason = dlerror();
      error_ = reason != nullptr ? reason : "dlopen failed";
      continue;
    }
    link_map* map = nullptr;
    path_ = candidate;
    if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0') {
      path_ = map->l_name;
    }
    return;
  }
}

void* SharedObject::find(const char* symbol) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
}

}  // namespace gemmhoist::bench

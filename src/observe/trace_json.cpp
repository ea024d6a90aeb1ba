// Format: "Trace Event Format", JSON object form. A viewer groups rows ("threads") by "processes": the host
// is one of these, under its real process id; each device is another, under an id that no process can have
// (above 2^30; Linux stops at 2^22) and that differs between traces which are opened together.
#include "observe/trace_json.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "os/files.hpp"
#include "os/line.hpp"
#include "os/os.hpp"

namespace gemmhoist::observe {
namespace {

struct Row {
  const char* kind;
  int device;
  int index;
};

// Distinct rows in the order of their first span; the place is the "thread" id.
struct Rows {
  static constexpr int kMost = 2048;  // 1024 copy threads, the streams of 64 devices, callers
  int count;
  Row of[kMost];

  int find_or_add(const Span& span) noexcept {
    for (int i = 0; i < count; ++i) {
      const Row& row = of[i];
      if (row.device == span.device && row.index == span.index && std::strcmp(row.kind, span.row) == 0)
        return i;
    }
    if (count == kMost) return kMost - 1;
    of[count] = {span.row, span.device, span.index};
    return count++;
  }
};

class Writer {
 public:
  explicit Writer(Rows& rows) noexcept : rows_(rows), host_(getpid()) {}

  bool write(const char* path) noexcept {
    if (!file_.open(path)) return false;
    find_rows_and_base();
    put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    write_names();
    write_spans();
    os::Line end;
    end.text("\n],\"otherData\":{\"clock\":\"CLOCK_MONOTONIC\",\"base_ns\":\"").integer(base_ns_);
    end.text("\",\"dropped_spans\":").count(trace_dropped()).text("}}\n");
    put(end.c_str());
    return file_.commit();
  }

 private:
  void put(const char* text) noexcept { good_ = file_.append(text, std::strlen(text)) && good_; }

  std::int64_t process(int device) const noexcept {
    return device < 0 ? host_ : (std::int64_t{1} << 30) + host_ * 256 + device;
  }

  void find_rows_and_base() noexcept {
    Span span;
    bool any = false;
    for (std::size_t i = 0; i < trace_spans(); ++i) {
      if (!trace_span(i, span)) continue;
      rows_.find_or_add(span);
      if (!any || span.begin_ns < base_ns_) base_ns_ = span.begin_ns;
      any = true;
    }
  }

  os::Line& begin(os::Line& line) noexcept {
    if (!first_) line.text(",\n");
    first_ = false;
    return line;
  }

  void write_metadata(const char* what, std::int64_t pid, int tid, os::Line& value) noexcept {
    os::Line line;
    begin(line).text("{\"ph\":\"M\",\"name\":\"").text(what).text("\",\"pid\":").integer(pid);
    line.text(",\"tid\":").integer(tid).text(",\"args\":{\"name\":").json(value.c_str()).text("}}");
    put(line.c_str());
  }

  void write_names() noexcept {
    for (int i = 0; i < rows_.count; ++i) {
      const Row& row = rows_.of[i];
      bool known = false;
      for (int j = 0; j < i; ++j) known = known || rows_.of[j].device == row.device;
      if (!known) {
        os::Line name;
        if (row.device < 0)
          name.text("host");
        else
          name.text("GPU ").integer(row.device);
        write_metadata("process_name", process(row.device), 0, name);
      }
      os::Line name;
      name.text(row.kind);
      if (row.index >= 0) name.character(' ').integer(row.index);
      write_metadata("thread_name", process(row.device), i + 1, name);
    }
  }

  void write_spans() noexcept {
    Span span;
    for (std::size_t i = 0; i < trace_spans() && good_; ++i) {
      if (!trace_span(i, span)) continue;
      const std::int64_t duration = span.end_ns > span.begin_ns ? span.end_ns - span.begin_ns : 0;
      os::Line line;  // microseconds, by the format
      begin(line).text("{\"ph\":\"X\",\"name\":").json(span.name);
      line.text(",\"pid\":").integer(process(span.device));
      line.text(",\"tid\":").integer(rows_.find_or_add(span) + 1);
      line.text(",\"ts\":").fixed(span.begin_ns - base_ns_, 3).text(",\"dur\":").fixed(duration, 3);
      if (span.bytes > 0) line.text(",\"args\":{\"bytes\":").integer(span.bytes).text("}");
      line.character('}');
      put(line.c_str());
    }
  }

  Rows& rows_;
  std::int64_t host_;
  std::int64_t base_ns_ = 0;
  os::AtomicFile file_;
  bool first_ = true;
  bool good_ = true;
};

}  // namespace

bool write_trace_json(const char* path) noexcept {
  // The exit handler's stack may be small.
  void* memory = mmap(nullptr, sizeof(Rows), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  bool written = false;
  {
    Writer writer(*static_cast<Rows*>(memory));
    written = writer.write(path);
  }
  munmap(memory, sizeof(Rows));
  return written;
}

}  // namespace gemmhoist::observe

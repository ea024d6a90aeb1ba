#include "pipeline/copy_queue.hpp"

#include <sched.h>

#include "observe/trace.hpp"
#include "os/os.hpp"
#include "pipeline/host_copy.hpp"

namespace gemmhoist::pipeline {
namespace {

const std::uint32_t* word(const std::atomic<std::uint32_t>& atomic) noexcept {
  return reinterpret_cast<const std::uint32_t*>(&atomic);
}

constexpr std::uint64_t pack(std::uint32_t ticket, std::int64_t pieces) noexcept {
  return std::uint64_t{ticket} << 32 | static_cast<std::uint64_t>(pieces);
}
constexpr std::uint32_t ticket_of(std::uint64_t claim) noexcept {
  return static_cast<std::uint32_t>(claim >> 32);
}
constexpr std::uint32_t next_of(std::uint64_t claim) noexcept {
  return claim >> 16 & 0xffff;
}
constexpr std::uint32_t pieces_of(std::uint64_t claim) noexcept {
  return claim & 0xffff;
}
constexpr std::uint64_t kOnePiece = std::uint64_t{1} << 16;

void fill(const CopyTask& task, const Part& piece) noexcept {
  stream_lines(task.destination + piece.x + piece.y * task.destination_pitch, task.destination_pitch,
               task.source + piece.x + piece.y * task.source_pitch, task.source_pitch, piece.width,
               piece.height);
}

void write_back(const CopyTask& task, const Part& piece, Tile& tile) noexcept {
  if (!tile.begin()) return;
  write_back_lines(task.destination + piece.x + piece.y * task.destination_pitch, task.destination_pitch,
                   task.source + piece.x + piece.y * task.source_pitch, task.source_pitch, piece.width,
                   piece.height, task.beta);
  tile.end();
}

void do_piece(const CopyTask& task, std::int64_t index) noexcept {
  const Part piece = part(task.pieces, index);
  if (task.kind == CopyKind::touch) {
    touch_pages(task.destination + piece.x, piece.width);
    return;
  }
  const Entry entry(*task.gate);
  if (!entry.allowed()) return;
  if (task.kind == CopyKind::fill) {
    fill(task, piece);
  } else {
    write_back(task, piece, task.tiles[index]);
  }
}

const char* span_name(CopyKind kind) noexcept {
  switch (kind) {
    case CopyKind::fill:
      return "fill";
    case CopyKind::write_back:
      return "write back";
    case CopyKind::touch:
      break;
  }
  return "touch";
}

void trace_piece(const CopyTask& task, std::int64_t index, int thread, std::int64_t begin_ns) noexcept {
  const Part piece = part(task.pieces, index);
  const auto bytes = static_cast<std::int64_t>(piece.width * piece.height * sizeof(float));
  observe::add_span({thread >= 0 ? "copy thread" : "worker", -1, thread >= 0 ? thread : 0,
                     span_name(task.kind), begin_ns, observe::now_ns(), bytes});
}

}  // namespace

void Gate::wait_until_empty() const noexcept {
  for (int i = 0; inside.load(std::memory_order_seq_cst) != 0; ++i) {
    if (i < 256) {
      pause();
    } else {
      sched_yield();  // the one inside may want this very CPU
    }
  }
}

bool CopyQueue::publish(const CopyTask& task, Ticket& ticket) noexcept {
  ticket = published_.load(std::memory_order_relaxed);
  Place& place = places_[ticket % kTasks];
  const std::uint64_t old = place.claim.load(std::memory_order_relaxed);
  if (place.done.load(std::memory_order_acquire) != pieces_of(old)) return false;
  place.task = task;
  place.done.store(0, std::memory_order_relaxed);
  const std::int64_t pieces = task.pieces.parts();
  place.claim.store(pack(ticket, pieces), std::memory_order_release);
  published_.store(ticket + 1, std::memory_order_seq_cst);
  if (has_sleepers()) wake(static_cast<int>(pieces));
  return true;
}

bool CopyQueue::complete(Ticket ticket) const noexcept {
  const Place& place = places_[ticket % kTasks];
  const std::uint64_t claim = place.claim.load(std::memory_order_relaxed);
  return ticket_of(claim) != ticket || place.done.load(std::memory_order_acquire) == pieces_of(claim);
}

void CopyQueue::await_completion(std::uint32_t seen, std::int64_t deadline_ns) noexcept {
  worker_sleeps_.store(true, std::memory_order_seq_cst);
  if (completions() == seen) os::futex_wait(word(completions_), seen, deadline_ns);
  worker_sleeps_.store(false, std::memory_order_relaxed);
}

void CopyQueue::finish_all() noexcept {
  const std::uint32_t published = published_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 1; i <= kTasks; ++i) {
    for (int spins = 0; !complete(published - i); ++spins) {
      if (work(kWorker)) continue;
      if (spins < 256) {
        pause();
      } else {
        sched_yield();
      }
    }
  }
}

bool CopyQueue::claim(Place*& place, std::int64_t& piece) noexcept {
  while (true) {
    std::uint32_t head = head_.load(std::memory_order_acquire);
    if (head == published_.load(std::memory_order_seq_cst)) return false;
    place = &places_[head % kTasks];
    std::uint64_t claim = place->claim.load(std::memory_order_acquire);
    if (ticket_of(claim) != head) continue;  // head has moved on since it was read
    if (next_of(claim) == pieces_of(claim)) {
      head_.compare_exchange_strong(head, head + 1, std::memory_order_acq_rel);
      continue;
    }
    if (place->claim.compare_exchange_weak(claim, claim + kOnePiece, std::memory_order_acq_rel)) {
      piece = next_of(claim);
      return true;
    }
  }
}

bool CopyQueue::work(int thread) noexcept {
  Place* place = nullptr;
  std::int64_t piece = 0;
  if (!claim(place, piece)) return false;
  // A span may need the heap, which a caller's thread must not: its copies show up as gaps of the others.
  const bool traced = thread != kCaller && observe::trace_enabled();
  const std::int64_t begin_ns = traced ? observe::now_ns() : 0;
  do_piece(place->task, piece);
  if (traced) trace_piece(place->task, piece, thread, begin_ns);

  // Read before the piece counts as done: from then on the place may serve another task.
  const std::uint32_t pieces = pieces_of(place->claim.load(std::memory_order_relaxed));
  if (place->done.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces) {
    completions_.fetch_add(1, std::memory_order_seq_cst);
    if (worker_sleeps_.load(std::memory_order_seq_cst)) os::futex_wake(word(completions_), 1);
  }
  return true;
}

bool CopyQueue::has_work() noexcept {
  // A place whose pieces are all claimed may still be the head: claim() moves on, this only looks.
  for (std::uint32_t i = head_.load(std::memory_order_acquire);; ++i) {
    if (i == published_.load(std::memory_order_seq_cst)) return false;
    const std::uint64_t claim = places_[i % kTasks].claim.load(std::memory_order_acquire);
    if (ticket_of(claim) != i || next_of(claim) != pieces_of(claim)) return true;
  }
}

std::uint32_t CopyQueue::sleep_ticket() noexcept {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  return wake_word_.load(std::memory_order_seq_cst);
}

void CopyQueue::sleep(std::uint32_t ticket) noexcept {
  os::futex_wait(word(wake_word_), ticket, 0);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void CopyQueue::cancel_sleep() noexcept {
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void CopyQueue::wake(int threads) noexcept {
  wake_word_.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake(word(wake_word_), threads);
}

}  // namespace gemmhoist::pipeline

"""Deliberate faults. Each must make some test fail: a suite that passes over one of them would pass over the real thing.

`old` occurs exactly once in `file`. `tests` are names of Meson tests, with, for GoogleTest programs, a filter; the first
that fails settles the matter, so the likeliest comes first.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str  # what goes wrong, in the words of a user's bug report
    file: str
    old: str
    new: str
    tests: tuple  # of "meson-test-name" or "meson-test-name:gtest-filter"


RULES = "core gemm rules"
RESULTS = "pipeline:Results.OddSizesAllTransposes:Results.ScalarsApplyOnceEach"
BLOCKS = "pipeline:Results.DeviceMemoryMuchSmallerThanOperands"
FAULTS = "pipeline:Faults.EveryCallOnceTransient"
IMAGES = "pipeline:Bf16x6.*"
PORTABLE = "fallback portable_sgemm"

MUTANTS = (
    # --- BLAS rules ---
    Mutant("row-major: the transposes stay where they were", "src/core/gemm_rules.cpp",
           "    std::swap(trans_a, trans_b);\n", "", (RULES,)),
    Mutant("row-major: m and n are not exchanged", "src/core/gemm_rules.cpp",
           "    call.m = raw.n;\n    call.n = raw.m;\n", "    call.m = raw.m;\n    call.n = raw.n;\n", (RULES,)),
    Mutant("alpha = 0 reads A and B", "src/core/gemm_rules.hpp",
           " || alpha_zero ? CallClass::trivial", " ? CallClass::trivial", (RULES,)),
    Mutant("alpha = NaN is taken for zero", "src/core/gemm_rules.hpp",
           "(std::bit_cast<std::uint32_t>(alpha) << 1) == 0;", "!(alpha < 0.0f || alpha > 0.0f);", (RULES,)),
    Mutant("a short ldc is not reported", "src/core/gemm_rules.hpp",
           " || too_short(ldc, m)) return", ") return", (RULES,)),
    Mutant("the conjugate transpose of the C interface is unknown", "src/core/gemm_rules.hpp",
           "    case 113:\n", "", (RULES,)),
    Mutant("a 64-bit extent is cut to 32 bits", "src/core/gemm_rules.cpp",
           "  call.beta = raw.beta;\n  call.k = raw.k;\n", "  call.beta = raw.beta;\n  call.k = static_cast<int>(raw.k);\n", (RULES,)),

    # --- the portable product ---
    Mutant("portable: alpha = 0 reads A and B", "fallback/portable_sgemm.cpp",
           "if (call.k <= 0 || call.alpha == 0) {", "if (call.k <= 0) {", (PORTABLE,)),
    Mutant("portable: the last slice of k is lost", "fallback/portable_sgemm.cpp",
           "l0 < call.k; l0 += kDepth", "l0 + kDepth <= call.k; l0 += kDepth", (PORTABLE,)),

    # --- products of images ---
    Mutant("bf16x6: tiles out of range are left as they were", "src/pipeline/execution.cpp",
           "  if (images.leftover < 0) return {};\n", "  if (images.used()) return {};\n", (IMAGES,)),
    Mutant("bf16x6: marks of one launch are those of another", "src/plan/schedule.cpp",
           "    step.marks = next_mark_;\n", "    step.marks = 0;\n", ("plan:Plan.*", IMAGES)),
    Mutant("bf16x6: panels are multiplied before they are images", "src/pipeline/uploads.cpp",
           "GEMMHOIST_RETURN_IF_FAILED(make_image(context_.plan.steps[step]));\n", "(void)step;\n", (IMAGES,)),
    Mutant("bf16x6: tiles made in fp32 are not counted", "src/pipeline/leftovers.cpp",
           "    count_ += ", "    under_way_ += 0 * ", (IMAGES,)),
    Mutant("bf16x6 beyond the device's memory is taken where it is slower", "src/plan/plan.cpp",
           "walked_seconds(input, blocks) >= kWorthImages * rival_s", "walked_seconds(input, blocks) >= 9 * rival_s", ("plan:Plan.*",)),
    Mutant("a profile of before the faster precisions is thrown away", "src/decide/profile_file.cpp",
           "needed |= field.late ? 0 : bit_of(field);", "needed |= bit_of(field);", ("decide:ProfileFile.*",)),
    Mutant("a precision is used that was never measured", "src/plan/tiling.cpp",
           " || !(flops_per_s(*input.profile, input.precision) > 0)", "", ("plan:Plan.*",)),

    # --- the pipeline's results ---
    Mutant("the padding below C's rows is written", "src/pipeline/host_copy.cpp",
           "copy_lines(c, ldc, product, pitch, width, height);",
           "copy_lines(c, ldc, product, pitch, width + (ldc > width ? 1 : 0), height);", (RESULTS,)),
    Mutant("beta = 0 multiplies what C held", "src/pipeline/host_copy.cpp",
           "  if (beta == 0) {\n", "  if (beta == 0 && c == nullptr) {\n", (RESULTS,)),
    Mutant("the last k block is lost", "src/pipeline/execution.cpp",
           "static_cast<std::int32_t>(round_up(step.depth.extent, kernel.tile_k))",
           "static_cast<std::int32_t>(step.depth.extent / kernel.tile_k * kernel.tile_k)", (RESULTS,)),
    Mutant("the last row of a strip is not computed", "src/pipeline/execution.cpp",
           "params.m = static_cast<std::int32_t>(step.rows.extent);",
           "params.m = static_cast<std::int32_t>(step.rows.extent) - 1;", (RESULTS,)),
    Mutant("the transposes of B are confused", "src/pipeline/execution.hpp",
           "call.trans_b == Transpose::yes", "call.trans_b == Transpose::no", (RESULTS,)),
    Mutant("the depth padding is not zeroed", "src/pipeline/uploads.cpp",
           "if (padded <= step.depth.extent) return {};", "if (padded > 0) return {};",
           ("pipeline:Results.FormerContentsOfDeviceMemoryAreNotUsed", RESULTS)),
    Mutant("later slices of k overwrite earlier ones", "src/pipeline/execution.cpp",
           "params.accumulate = step.accumulate ? 1 : 0;", "params.accumulate = 0;", (BLOCKS,)),
    Mutant("alpha is applied with every slice of k", "src/pipeline/execution.cpp",
           "step.last_slice ? context_.job.call.alpha : 1.0F", "context_.job.call.alpha", (BLOCKS,)),

    # --- order on the device ---
    Mutant("a write-back does not wait for its arithmetic", "src/pipeline/write_backs.cpp",
           "    if (chunk.first) {\n", "    if (chunk.first && chunk.height < 0) {\n", (RESULTS, BLOCKS)),
    Mutant("arithmetic does not wait for its panels", "src/pipeline/execution.cpp",
           "  for (const std::int32_t before : step.after) {\n    GEMMHOIST_RETURN_IF_FAILED(\n        context_.device.wait(stream,",
           "  for (const std::int32_t before : step.after) {\n    if (before >= 0) continue;\n    GEMMHOIST_RETURN_IF_FAILED(\n        context_.device.wait(stream,",
           (RESULTS, BLOCKS)),
    Mutant("a pinned slot is filled again before it was sent", "src/pipeline/uploads.cpp",
           "    if (!free) return {};\n", "", ("pipeline:Results.TinyPinnedArena", BLOCKS)),
    Mutant("a C buffer is used again before its content is home", "src/plan/schedule.cpp",
           "    depend(step, last_write_back_[place.c_buffer], ready);\n", "", ("plan", BLOCKS)),
    Mutant("panels are overwritten while they are read", "src/plan/schedule.cpp",
           "    depend(step, reader, ready);\n", "", ("plan", BLOCKS)),

    # --- the ledger, and calls that are taken back ---
    Mutant("a tile that is home is not marked: beta twice after a failure", "src/pipeline/copy_queue.cpp",
           "  tile.end();\n", "", ("pipeline:Results.KernelAndTilesAreReported", FAULTS)),
    Mutant("a tile counts as written before anything was", "src/pipeline/ledger.cpp",
           "tile.state.store(TileState::pending,", "tile.state.store(TileState::written,",
           ("pipeline:Ledger.LeftRegionsAreMerged", FAULTS)),
    Mutant("a call that was taken back goes on writing C", "src/pipeline/copy_queue.cpp",
           "  if (!entry.allowed()) return;\n", "",
           ("pipeline:CopyQueue.ClosedGateMovesNothing", "pipeline:Faults.DeadlineAtAnyMoment")),
    Mutant("a write-back piece behind a closed gate still marks its tile", "src/pipeline/copy_queue.cpp",
           "  if (!entry.allowed()) return;\n",
           "  if (!entry.allowed()) {\n    if (task.kind == CopyKind::write_back && task.tiles[index].begin()) task.tiles[index].end();\n"
           "    return;\n  }\n", ("pipeline:CopyQueue.ClosedGateMovesNothing",)),
    Mutant("the rescue does again what is home: beta twice", "src/pipeline/ledger.cpp",
           "if (tile.state.load(std::memory_order_acquire) != TileState::written) merger.add",
           "merger.add", ("pipeline:Ledger.WrittenTilesAreLeftOut", FAULTS)),
    Mutant("the deadline is ignored", "src/pipeline/job.cpp",
           "    if (now >= deadline_ns) return finished(job);\n", "", ("pipeline:Faults.HangInsideTheDriver",)),

    Mutant("memory that the driver still has pinned is unmapped", "src/pipeline/engine.cpp",
           "if (pinned_ != nullptr && !pinned_registered_) os::unmap", "if (pinned_ != nullptr && !lost_) os::unmap",
           ("pipeline:Measure.ALossWhileMeasuringLeavesPinnedMemoryMapped", "pipeline:Faults.StartFailsAtEveryCall")),

    # --- decisions and the life of a process ---
    Mutant("the GPU is taken where it is slower", "src/decide/decide.cpp",
           "!(made.gpu_s < kFasterMargin * made.cpu_s)", "!(made.gpu_s < 2 * made.cpu_s)", ("decide",)),
    Mutant("the GPU is started before it has earned it", "src/decide/decide.cpp",
           "const bool earned = input.earned_s >= profile.start_s + profile.end_s;", "const bool earned = true;", ("decide",)),
    Mutant("no call is worth waiting for the GPU's start", "src/decide/decide.cpp",
           "if (alone < kWaitMargin * made.cpu_s)", "if (alone < 0 * made.cpu_s)", ("decide",)),
    Mutant("what calls would have gained is forgotten: the GPU never starts", "src/dispatch/gpu.cpp",
           "g_earned_ns.fetch_add(static_cast<std::int64_t>(seconds * 1e9),", "g_earned_ns.fetch_add(static_cast<std::int64_t>(seconds * 0),",
           ("dispatch:Start.TiersUp",)),
    Mutant("a start that hangs holds its caller for 20 s", "src/dispatch/dispatch.cpp",
           "std::min(1e9 * decision.cpu_s, static_cast<double>(kStartDeadlineNs))", "static_cast<double>(kStartDeadlineNs)",
           ("dispatch:Start.HangsForNoLongerThanTheCpuWouldTake",)),
    Mutant("a thread's own mode is ignored", "src/dispatch/dispatch.cpp",
           "      return RouteMode::cpu;\n", "      return RouteMode::automatic;\n",
           ("dispatch:Start.ThreadsHaveModes",)),
    Mutant("the rescue applies beta twice", "src/dispatch/dispatch.cpp",
           "  fallback::multiply(*rescue.provider, part);\n",
           "  fallback::multiply(*rescue.provider, part);\n  fallback::multiply(*rescue.provider, part);\n",
           ("dispatch:Failure.MemoryNeverComesBack",)),
    Mutant("the rescue forgets in which column it begins", "src/dispatch/dispatch.cpp",
           "  part.c += i + j * part.ldc;\n", "  part.c += i;\n",
           ("abi gpu_route:GpuRoute.WhatTheDeviceLeavesTheCpuFinishes",)),
    Mutant("a forked child uses its parent's GPU", "src/dispatch/dispatch.cpp",
           "  if (forked) input.gpu = GpuState::lost;\n", "", ("dispatch:Life.Fork",)),
    Mutant("a product of the GPU is not counted", "src/dispatch/dispatch.cpp",
           "      observe::add(Counter::calls_gpu);\n", "",
           ("abi gpu_route:GpuRoute.EverySpellingIsServed",)),
    Mutant("the caller waits for a hung device without end", "src/dispatch/device_slot.cpp",
           "pipeline::wait(job, begun_ns + patience_ns)", "pipeline::wait(job, begun_ns + (patience_ns << 20))",
           ("dispatch:Failure.HangForGood",)),
    Mutant("a lost device is used again", "src/dispatch/device_slot.cpp",
           "  if (lost_.load(std::memory_order_acquire)) return Health::lost;\n", "", ("dispatch:Failure.DeviceIsLost",)),
    Mutant("a BLAS that calls us back is called without a guard as it is found", "src/abi/at_once.hpp",
           "  return known;\n", "  (void)known;\n  return fallback::known_provider(spelling);\n", ("abi at_once",)),
    Mutant("each fork maps a quarter of a MiB of counters", "src/observe/counters.cpp",
           "if (!detail::page_is_used[page].load(std::memory_order_relaxed)) continue;", "", ("observe:Counters.*",)),
    Mutant("looking at the CPU again takes a tenth of the time", "src/decide/cpu_rates.cpp",
           "constexpr double kLookShare = 0.01;", "constexpr double kLookShare = 0.1;", ("decide",)),
    Mutant("a CPU that was busy is never looked at again", "src/dispatch/dispatch.cpp",
           "    decision.reason = Reason::cpu_looked_at;\n", "    decision.reason = Reason::gpu_faster;\n",
           ("dispatch:Correction.CpuThatWasBusy",)),
    Mutant("a look at a CPU whose threads sleep makes it look slower", "src/decide/cpu_rates.cpp",
           "if (!(known > 0) || flops_of(m, n, k) / seconds > known) learn", "if (known != 1) learn", ("decide",)),
    Mutant("the GPU is not closed at exit", "src/dispatch/gpu.cpp",
           "if (!registered.exchange(true)) (void)std::atexit(close_at_exit);", "(void)registered.exchange(true);",
           ("dispatch:Life.Exit",)),

    # --- the exported names ---
    Mutant("an entry is not counted", "src/abi/serve.cpp",
           "  observe::add(family_of(spelling));\n", "", ("abi calls:Calls.ThreeProgramsAreEachCountedOnce",)),
    Mutant("the reference BLAS' inner call is served again", "src/abi/serve.cpp",
           "  if (provider.may_reenter) {\n", "  if (provider.may_reenter && provider.function == nullptr) {\n",
           ("abi discovery:Discovery.ReferenceByNameCountsItsInnerCallOnce",)),
    Mutant("a small product is not counted", "src/abi/at_once.hpp",
           "return observe::add_both_as_owner(", "return true || observe::add_both_as_owner(",
           ("abi at_once", "abi calls:Calls.ThreeProgramsAreEachCountedOnce")),
    Mutant("a small product passes by a BLAS that calls us back", "src/abi/at_once.hpp",
           " || fallback::guards_in_use()) return nullptr;", ") return nullptr;", ("abi at_once",)),
    Mutant("a row-major small product is judged by the wrong leading dimensions", "src/abi/at_once.hpp",
           "    std::swap(lda, ldb);\n", "", ("abi at_once",)),
    Mutant("a thread's small products stay on the CPU though it asks for the GPU", "src/dispatch/dispatch.cpp",
           "  if (mode == GEMMHOIST_MODE_GPU)\n", "  if (mode == GEMMHOIST_MODE_GPU && mode == GEMMHOIST_MODE_CPU)\n",
           ("cases process:On/ThreadMode.*",)),
    Mutant("fork's handlers are not installed", "src/abi/hooks.cpp",
           "  (void)pthread_atfork(before_fork, in_forking_parent, in_forked_child);\n",
           "  if (before_fork == in_forked_child) in_forking_parent();\n",
           ("abi gpu_route:GpuRoute.ForkedChildGoesToTheCpuAndTheParentGoesOn",)),
    Mutant("nothing happens at the end of the process", "src/abi/hooks.cpp",
           "[[gnu::destructor]] void on_unload() {\n  dispatch::on_unload();\n", "[[gnu::destructor]] void on_unload() {\n",
           ("abi calls:Calls.SummaryIsOneThingAtTheEnd",)),
    Mutant("alpha = 0 is left to kernels that read A and B", "src/abi/serve.cpp",
           "return call.alpha == 0 &&", "return call.alpha != 0 &&", ("abi calls:Calls.AlphaZeroIsRightOverABlasThatReadsForIt",)),
    # --- the system ---
    Mutant("the host's long doubles are left with our flags", "src/os/floating_point.cpp",
           "  } else if (!x87_is_default()) {\n", "  } else if (!x87_is_default() && saved.mxcsr == 0) {\n",
           ("os:DefaultFloatingPoint.TheX87UnitToo",)),
    Mutant("a host's unusual x87 control word holds in ours", "src/os/floating_point.cpp",
           "return x87_control() == kDefaultControl && !x87_has_flags();", "return !x87_has_flags();",
           ("os:DefaultFloatingPoint.TheX87UnitToo",)),
    Mutant("a fork goes unnoticed", "src/os/fork.cpp",
           "return __atomic_load_n(word, __ATOMIC_ACQUIRE) == 0;", "return word == nullptr;", ("os",)),
    Mutant("a product is not counted", "src/observe/counters.cpp",
           "fetch_add(amount, std::memory_order_relaxed);", "fetch_add(amount - 1, std::memory_order_relaxed);", ("observe",)),
    Mutant("two threads count in one shard", "src/observe/counters.hpp",
           "  if (shard.owner.load(std::memory_order_relaxed) != thread) [[unlikely]]\n    return detail::",
           "  if (shard.owner.load(std::memory_order_relaxed) == 0) [[unlikely]]\n    return detail::",
           ("observe:Counters.ThreadsWithoutAShardOfTheirOwnCountToo",)),
)

// Scheduling: threads of ours run soon after they wake, and not all on one CPU, even where every CPU is busy.
//
// A program that calls a CPU BLAS between our calls leaves that BLAS' threads spinning on all CPUs: OpenBLAS'
// for 2^28 cycles, a tenth of a second. Threads that wake meanwhile then wait for the scheduler's slice to
// end, or for each other on one CPU, and a product takes several times as long.
#pragma once

namespace gemmhoist::pipeline {

// Asks for a short time slice for the calling thread, a thread of ours, so that it goes first when it wakes.
// Its share of the CPU stays the same, it only comes in smaller and earlier portions (Linux 6.12 and later;
// without effect before, and where the thread has another policy than the usual ones).
void prefer_short_slice() noexcept;

// Keeps the calling thread, number `index` of its pool, to a few of the CPUs that it may use, other ones than
// its neighbours in the pool. Where no CPU is idle the kernel may wake a thread on its waker's CPU, since
// that one looks the least loaded: twelve threads woken one after another, all of them, until the load
// balancer parts them many milliseconds later. A few rather than one: should another thread hog a CPU, the
// kernel still has a choice.
void keep_apart(int index) noexcept;

}  // namespace gemmhoist::pipeline

#include <gtest/gtest.h>

#include "machines.hpp"
#include "plan/plan.hpp"

namespace gemmhoist::plan::testing {
namespace {

std::string print(const PlanInput& in) {
  Plan plan;
  EXPECT_EQ(make_plan(in, plan), PlanError::none);
  return to_string(plan);
}

// Too small for anything to overlap.
TEST(Print, OneTile) {
  const MachineProfile profile = h200();
  const char* expected =
      "plan blocks 1 steps 4 lda 128 ldb 256 ldc 128 depth 96 sets 1 c_buffers 1 device 2275328 chunk 131072 "
      "piece 32768 slots 16+16 predicted_us 83 kernel_us 0\n"
      "0 upload A m [0,100) k [0,70) set 0 block 0\n"
      "1 upload B n [0,60) k [0,70) set 0 block 0\n"
      "2 compute m [0,100) n [0,60) k [0,70) kernel 2 stream 0 set 0 c 0 last block 0 after 1\n"
      "3 write_back m [0,100) n [0,60) c 0 block 0 after 2\n";
  EXPECT_EQ(print(product(100, 60, 70, profile)), expected);
}

// B is short: it goes first and stays, panels of A stream past it. Both are K-outer as they are stored.
TEST(Print, AShortOperandStays) {
  const MachineProfile profile = h200();
  PlanInput in = product(3000, 256, 500, profile);
  in.trans_b = Transpose::yes;
  const char* expected =
      "plan blocks 1 steps 37 lda 3072 ldb 256 ldc 3008 depth 512 sets 1 c_buffers 1 device 9895936 chunk "
      "524288 piece 32768 slots 16+16 predicted_us 271 kernel_us 32\n"
      "0 upload B n [0,256) k [0,500) set 0 block 0\n"
      "1 upload A m [0,256) k [0,500) set 0 block 0\n"
      "2 compute m [0,256) n [0,256) k [0,500) kernel 2 stream 0 set 0 c 0 last block 0 after 1\n"
      "3 write_back m [0,256) n [0,256) c 0 block 0 after 2\n"
      "4 upload A m [256,512) k [0,500) set 0 block 0\n"
      "5 compute m [256,512) n [0,256) k [0,500) kernel 2 stream 1 set 0 c 0 last block 0 after 4\n"
      "6 write_back m [256,512) n [0,256) c 0 block 0 after 5\n"
      "7 upload A m [512,768) k [0,500) set 0 block 0\n"
      "8 compute m [512,768) n [0,256) k [0,500) kernel 2 stream 2 set 0 c 0 last block 0 after 7\n"
      "9 write_back m [512,768) n [0,256) c 0 block 0 after 8\n"
      "10 upload A m [768,1024) k [0,500) set 0 block 0\n"
      "11 compute m [768,1024) n [0,256) k [0,500) kernel 2 stream 3 set 0 c 0 last block 0 after 10\n"
      "12 write_back m [768,1024) n [0,256) c 0 block 0 after 11\n"
      "13 upload A m [1024,1280) k [0,500) set 0 block 0\n"
      "14 compute m [1024,1280) n [0,256) k [0,500) kernel 2 stream 0 set 0 c 0 last block 0 after 13\n"
      "15 write_back m [1024,1280) n [0,256) c 0 block 0 after 14\n"
      "16 upload A m [1280,1536) k [0,500) set 0 block 0\n"
      "17 compute m [1280,1536) n [0,256) k [0,500) kernel 2 stream 1 set 0 c 0 last block 0 after 16\n"
      "18 write_back m [1280,1536) n [0,256) c 0 block 0 after 17\n"
      "19 upload A m [1536,1792) k [0,500) set 0 block 0\n"
      "20 compute m [1536,1792) n [0,256) k [0,500) kernel 2 stream 2 set 0 c 0 last block 0 after 19\n"
      "21 write_back m [1536,1792) n [0,256) c 0 block 0 after 20\n"
      "22 upload A m [1792,2048) k [0,500) set 0 block 0\n"
      "23 compute m [1792,2048) n [0,256) k [0,500) kernel 2 stream 3 set 0 c 0 last block 0 after 22\n"
      "24 write_back m [1792,2048) n [0,256) c 0 block 0 after 23\n"
      "25 upload A m [2048,2304) k [0,500) set 0 block 0\n"
      "26 compute m [2048,2304) n [0,256) k [0,500) kernel 2 stream 0 set 0 c 0 last block 0 after 25\n"
      "27 write_back m [2048,2304) n [0,256) c 0 block 0 after 26\n"
      "28 upload A m [2304,2560) k [0,500) set 0 block 0\n"
      "29 compute m [2304,2560) n [0,256) k [0,500) kernel 2 stream 1 set 0 c 0 last block 0 after 28\n"
      "30 write_back m [2304,2560) n [0,256) c 0 block 0 after 29\n"
      "31 upload A m [2560,2816) k [0,500) set 0 block 0\n"
      "32 compute m [2560,2816) n [0,256) k [0,500) kernel 2 stream 2 set 0 c 0 last block 0 after 31\n"
      "33 write_back m [2560,2816) n [0,256) c 0 block 0 after 32\n"
      "34 upload A m [2816,3000) k [0,500) set 0 block 0\n"
      "35 compute m [2816,3000) n [0,256) k [0,500) kernel 2 stream 3 set 0 c 0 last block 0 after 34\n"
      "36 write_back m [2816,3000) n [0,256) c 0 block 0 after 35\n";
  EXPECT_EQ(print(in), expected);
}

// Four blocks of one large tile's width and two slices each: a panel that the next block shares is not sent
// again, an upload waits for the last reader of what it overwrites, a first slice for the write-back.
TEST(Print, BlocksAndSlicesBeyondMemory) {
  constexpr KernelDescriptor kernels[] = {kLarge, kTransposeKernel};
  MachineProfile profile = h200();
  profile.h2d = profile.d2h = {8e-6, 55e9};  // dear chunks: deeper slices
  PlanInput in = product(512, 512, 256, profile);
  in.kernels = kernels;
  in.pinned_bytes = 1 << 20;
  in.device_bytes = 1700000;
  const char* expected =
      "plan blocks 4 steps 22 lda 256 ldb 256 ldc 256 depth 128 sets 2 c_buffers 1 device 1441792 chunk "
      "131072 piece 32768 slots 5+3 predicted_us 390 kernel_us 3\n"
      "0 upload A m [0,256) k [0,128) set 0 block 0\n"
      "1 upload B n [0,256) k [0,128) set 0 block 0\n"
      "2 compute m [0,256) n [0,256) k [0,128) kernel 0 stream 0 set 0 c 0 block 0 after 1\n"
      "3 upload A m [0,256) k [128,256) set 1 block 0\n"
      "4 upload B n [0,256) k [128,256) set 1 block 0\n"
      "5 compute m [0,256) n [0,256) k [128,256) kernel 0 stream 0 set 1 c 0 accumulate last block 0 after "
      "4\n"
      "6 write_back m [0,256) n [0,256) c 0 block 0 after 5\n"
      "7 upload B n [256,512) k [0,128) set 0 block 1 after 2\n"
      "8 compute m [0,256) n [256,512) k [0,128) kernel 0 stream 1 set 0 c 0 block 1 after 7,6\n"
      "9 upload B n [256,512) k [128,256) set 1 block 1 after 5\n"
      "10 compute m [0,256) n [256,512) k [128,256) kernel 0 stream 1 set 1 c 0 accumulate last block 1 "
      "after 9\n"
      "11 write_back m [0,256) n [256,512) c 0 block 1 after 10\n"
      "12 upload A m [256,512) k [0,128) set 0 block 2 after 8\n"
      "13 compute m [256,512) n [256,512) k [0,128) kernel 0 stream 2 set 0 c 0 block 2 after 12,11\n"
      "14 upload A m [256,512) k [128,256) set 1 block 2 after 10\n"
      "15 compute m [256,512) n [256,512) k [128,256) kernel 0 stream 2 set 1 c 0 accumulate last block 2 "
      "after 14\n"
      "16 write_back m [256,512) n [256,512) c 0 block 2 after 15\n"
      "17 upload B n [0,256) k [0,128) set 0 block 3 after 13\n"
      "18 compute m [256,512) n [0,256) k [0,128) kernel 0 stream 3 set 0 c 0 block 3 after 17,16\n"
      "19 upload B n [0,256) k [128,256) set 1 block 3 after 15\n"
      "20 compute m [256,512) n [0,256) k [128,256) kernel 0 stream 3 set 1 c 0 accumulate last block 3 "
      "after 19\n"
      "21 write_back m [256,512) n [0,256) c 0 block 3 after 20\n";
  EXPECT_EQ(print(in), expected);
}

}  // namespace
}  // namespace gemmhoist::plan::testing

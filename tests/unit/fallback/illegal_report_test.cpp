#include "fallback/illegal_report.hpp"

#include <gtest/gtest.h>

namespace gemmhoist::fallback {
namespace {

float x;
FortranArguments fortran(char ta, char tb, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t lda,
                         std::int64_t ldb, std::int64_t ldc) {
  return {ta, tb, m, n, k, 1, &x, lda, &x, ldb, 0, &x, ldc};
}
CblasArguments cblas(int order, int ta, int tb, std::int64_t m, std::int64_t n, std::int64_t k,
                     std::int64_t lda, std::int64_t ldb, std::int64_t ldc) {
  return {order, ta, tb, m, n, k, 1, &x, lda, &x, ldb, 0, &x, ldc};
}

// Numbers as OpenBLAS 0.3.21 prints them.
TEST(IllegalReport, NumbersFortranArguments) {
  EXPECT_EQ(illegal_parameter(fortran('N', 'N', 4, 4, 4, 4, 4, 4)), -1);
  EXPECT_EQ(illegal_parameter(fortran('X', 'Y', -1, 4, 4, 4, 4, 4)), 1);
  EXPECT_EQ(illegal_parameter(fortran('n', 'Y', -1, 4, 4, 4, 4, 4)), 2);
  EXPECT_EQ(illegal_parameter(fortran('R', 'c', -1, -1, 4, 4, 4, 4)), 3);
  EXPECT_EQ(illegal_parameter(fortran('N', 'N', 4, -1, -1, 4, 4, 4)), 4);
  EXPECT_EQ(illegal_parameter(fortran('N', 'N', 4, 4, -1, 2, 4, 4)), 5);
  EXPECT_EQ(illegal_parameter(fortran('N', 'N', 4, 2, 2, 3, 1, 3)), 8);
  EXPECT_EQ(illegal_parameter(fortran('T', 'N', 4, 2, 3, 2, 3, 4)), 8);
  EXPECT_EQ(illegal_parameter(fortran('T', 'N', 4, 2, 3, 3, 2, 3)), 10);
  EXPECT_EQ(illegal_parameter(fortran('T', 'T', 4, 2, 3, 3, 2, 3)), 13);
}

TEST(IllegalReport, NumbersRowMajorArgumentsAfterTheExchange) {
  EXPECT_EQ(illegal_parameter(cblas(7, 0, 0, -1, 4, 4, 4, 4, 4)), 0);
  EXPECT_EQ(illegal_parameter(cblas(101, 7, 111, 4, 4, 4, 4, 4, 4)), 2);
  EXPECT_EQ(illegal_parameter(cblas(102, 7, 111, 4, 4, 4, 4, 4, 4)), 1);
  EXPECT_EQ(illegal_parameter(cblas(101, 111, 7, 4, 4, 4, 4, 4, 4)), 1);
  EXPECT_EQ(illegal_parameter(cblas(101, 111, 111, -1, 4, 4, 4, 4, 4)), 4);
  EXPECT_EQ(illegal_parameter(cblas(101, 111, 111, 4, -1, 4, 4, 4, 4)), 3);
  EXPECT_EQ(illegal_parameter(cblas(101, 111, 111, 4, 4, 4, 2, 4, 4)), 10);
  EXPECT_EQ(illegal_parameter(cblas(101, 111, 111, 4, 4, 4, 4, 2, 4)), 8);
  EXPECT_EQ(illegal_parameter(cblas(101, 111, 111, 4, 4, 4, 4, 4, 2)), 13);
  EXPECT_EQ(illegal_parameter(cblas(102, 114, 113, 4, 4, 4, 4, 4, 4)), -1);
}

TEST(IllegalReport, SpeaksOpenBlasWordsOnStdout) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  report_illegal(8);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            " ** On entry to SGEMM  parameter number  8 had an illegal value\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace gemmhoist::fallback

! Arrays of Fortran as tensors: shapes are reversed, contiguous memory is used as it is, and other
! arrays are copied. Failures come back as a status and Choir's text.
program arrays
  use choir
  implicit none
  real(c_float), target :: a(3, 4)
  real(c_double), target :: cube(2, 3, 4)
  integer(c_int32_t), target :: empty(0, 5)
  type(c_ptr) :: frame, t
  type(choir_shape), pointer :: s
  real(c_float), pointer :: x(:)
  type(choir_optimizer_options) :: wrong
  integer :: i

  a = reshape([(real(i), i = 1, 12)], [3, 4])
  cube = 2
  frame = choir_frame_new(c_null_ptr)
  t = choir_array(frame, a)
  call need_shape(t, [4, 3])
  call c_f_pointer(choir_tensor_data(t), x, [12])
  a(2, 1) = 77 ! the memory is the array's
  call need(x(2) == 77, "borrowed memory")
  t = choir_array(frame, a(1:3:2, :)) ! every other: not contiguous
  call need_shape(t, [4, 2])
  call c_f_pointer(choir_tensor_data(t), x, [8])
  a = 0
  call need(x(1) == 1 .and. x(2) == 3 .and. x(8) == 12, "a copy of a part")
  call need_shape(choir_array(frame, cube), [4, 3, 2])
  call need_shape(choir_array(frame, empty), [5, 0])

  t = choir_matmul(choir_array(frame, a), choir_array(frame, a), CHOIR_TRANSPOSED_NONE)
  call need(.not. c_associated(t), "a product that does not fit")
  call need(choir_frame_status(frame) == CHOIR_INVALID, "its status")
  call need(index(choir_text(choir_error()), "matmul") > 0, "its text: " // choir_text(choir_error()))
  call need(choir_text(c_null_ptr) == "", "no text")
  wrong%learning_rate = -1
  call need(.not. c_associated(choir_optimizer_new(CHOIR_ADAM, wrong)), "a negative rate")
  call need(choir_error_status() == CHOIR_INVALID, "its status")
  call need(choir_axis(2) == 4 .and. choir_axis(-1) == int(ishft(1, 31)), "sets of axes")
  call choir_frame_free(frame)
contains
  subroutine need(truth, what)
    logical, intent(in) :: truth
    character(*), intent(in) :: what
    if (truth) return
    print *, "failed: ", what
    error stop 1
  end subroutine

  subroutine need_shape(tensor, dims)
    type(c_ptr), intent(in) :: tensor
    integer, intent(in) :: dims(:)
    call choir_must_have(tensor)
    call c_f_pointer(choir_tensor_shape(tensor), s)
    call need(s%rank == size(dims) .and. all(s%dim(1:size(dims)) == dims), "a shape")
  end subroutine
end program

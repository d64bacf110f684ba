
! A tensor of a Fortran array, whose first axis changes fastest: a(features, cells) is Choir's [cells,
! features]. The memory of a contiguous array with the attribute target is used as it is, and must live
! as long as the frame. Other arrays are copied. Arrays of other kinds do not compile.
interface choir_array
  module procedure array_f32_1, array_f32_2, array_f32_3, array_f32_4, array_f32_5, array_f64_1, array_f64_2, &
    array_f64_3, array_f64_4, array_f64_5, array_i32_1, array_i32_2, array_i32_3, array_i32_4, &
    array_i32_5, array_i64_1, array_i64_2, array_i64_3, array_i64_4, array_i64_5
end interface

integer(c_int), parameter :: CHOIR_NO_AXIS = 0
integer(c_int), parameter :: CHOIR_ALL_AXES = -1

contains

! A shape of Choir: the slowest axis first.
pure function choir_shape_of(dims) result(shape)
  integer, intent(in) :: dims(:)
  type(choir_shape) :: shape
  shape%rank = size(dims)
  shape%dim(1:size(dims)) = int(dims, c_int64_t)
end function

! The set of one axis, counted from 0, or from the end by negative numbers: CHOIR_AXIS.
pure function choir_axis(i) result(axes)
  integer, intent(in) :: i
  integer(c_int) :: axes
  axes = shiftl(1_c_int, iand(i, 31))
end function

! A text of Choir as a Fortran text; empty for NULL.
function choir_text(text) result(copy)
  type(c_ptr), intent(in) :: text
  character(:), allocatable :: copy
  character(kind=c_char), pointer :: letters(:)
  integer :: i
  copy = ""
  if (.not. c_associated(text)) return
  call c_f_pointer(text, letters, [huge(0)])
  i = 0
  do while (letters(i + 1) /= c_null_char)
    i = i + 1
  end do
  deallocate (copy)
  allocate (character(i) :: copy)
  copy = transfer(letters(1:i), copy)
end function

! Stops the program with Choir's text unless an action succeeded.
subroutine choir_must(status)
  integer(c_int), intent(in) :: status
  if (status == CHOIR_OK) return
  write (*, '(a)') choir_text(choir_error())
  error stop 1
end subroutine

! Stops the program with Choir's text unless an object was made.
subroutine choir_must_have(object)
  type(c_ptr), intent(in) :: object
  if (c_associated(object)) return
  write (*, '(a)') choir_text(choir_error())
  error stop 1
end subroutine

! A cluster of the processes of an MPI communicator, which is a number in Fortran (mpi_f08: MPI_VAL).
function choir_cluster_from_mpi_fortran(communicator, o) result(cluster)
  integer, intent(in), target :: communicator
  type(choir_cluster_options), intent(in), optional :: o
  type(c_ptr) :: cluster
  cluster = choir_cluster_from_mpi(c_loc(communicator), c_sizeof(communicator), o)
end function

pure function reversed(dims) result(s)
  integer, intent(in) :: dims(:)
  type(choir_shape) :: s
  s = choir_shape_of(dims(size(dims):1:-1))
end function

function array_f32_1(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_float), intent(in), target :: a(:)
  real(c_float), allocatable, target :: copy(:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F32, s, c_loc(copy))
  end if
end function

function array_f32_2(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_float), intent(in), target :: a(:,:)
  real(c_float), allocatable, target :: copy(:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F32, s, c_loc(copy))
  end if
end function

function array_f32_3(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_float), intent(in), target :: a(:,:,:)
  real(c_float), allocatable, target :: copy(:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F32, s, c_loc(copy))
  end if
end function

function array_f32_4(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_float), intent(in), target :: a(:,:,:,:)
  real(c_float), allocatable, target :: copy(:,:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F32, s, c_loc(copy))
  end if
end function

function array_f32_5(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_float), intent(in), target :: a(:,:,:,:,:)
  real(c_float), allocatable, target :: copy(:,:,:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F32, s, c_loc(copy))
  end if
end function

function array_f64_1(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_double), intent(in), target :: a(:)
  real(c_double), allocatable, target :: copy(:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F64, s, c_loc(copy))
  end if
end function

function array_f64_2(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_double), intent(in), target :: a(:,:)
  real(c_double), allocatable, target :: copy(:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F64, s, c_loc(copy))
  end if
end function

function array_f64_3(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_double), intent(in), target :: a(:,:,:)
  real(c_double), allocatable, target :: copy(:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F64, s, c_loc(copy))
  end if
end function

function array_f64_4(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_double), intent(in), target :: a(:,:,:,:)
  real(c_double), allocatable, target :: copy(:,:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F64, s, c_loc(copy))
  end if
end function

function array_f64_5(f, a) result(t)
  type(c_ptr), intent(in) :: f
  real(c_double), intent(in), target :: a(:,:,:,:,:)
  real(c_double), allocatable, target :: copy(:,:,:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_F64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_F64, s, c_loc(copy))
  end if
end function

function array_i32_1(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int32_t), intent(in), target :: a(:)
  integer(c_int32_t), allocatable, target :: copy(:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I32, s, c_loc(copy))
  end if
end function

function array_i32_2(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int32_t), intent(in), target :: a(:,:)
  integer(c_int32_t), allocatable, target :: copy(:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I32, s, c_loc(copy))
  end if
end function

function array_i32_3(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int32_t), intent(in), target :: a(:,:,:)
  integer(c_int32_t), allocatable, target :: copy(:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I32, s, c_loc(copy))
  end if
end function

function array_i32_4(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int32_t), intent(in), target :: a(:,:,:,:)
  integer(c_int32_t), allocatable, target :: copy(:,:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I32, s, c_loc(copy))
  end if
end function

function array_i32_5(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int32_t), intent(in), target :: a(:,:,:,:,:)
  integer(c_int32_t), allocatable, target :: copy(:,:,:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I32, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I32, s, c_loc(copy))
  end if
end function

function array_i64_1(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int64_t), intent(in), target :: a(:)
  integer(c_int64_t), allocatable, target :: copy(:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I64, s, c_loc(copy))
  end if
end function

function array_i64_2(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int64_t), intent(in), target :: a(:,:)
  integer(c_int64_t), allocatable, target :: copy(:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I64, s, c_loc(copy))
  end if
end function

function array_i64_3(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int64_t), intent(in), target :: a(:,:,:)
  integer(c_int64_t), allocatable, target :: copy(:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I64, s, c_loc(copy))
  end if
end function

function array_i64_4(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int64_t), intent(in), target :: a(:,:,:,:)
  integer(c_int64_t), allocatable, target :: copy(:,:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I64, s, c_loc(copy))
  end if
end function

function array_i64_5(f, a) result(t)
  type(c_ptr), intent(in) :: f
  integer(c_int64_t), intent(in), target :: a(:,:,:,:,:)
  integer(c_int64_t), allocatable, target :: copy(:,:,:,:,:)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, CHOIR_I64, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, CHOIR_I64, s, c_loc(copy))
  end if
end function

end module

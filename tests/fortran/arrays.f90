! Arrays of Fortran as tensors: shapes are reversed, contiguous memory is used as it is, and other
! arrays are copied. Failures come back as a status and Choir's text.
module steps
  use choir
  implicit none
contains
  function failing(r, user) bind(c) result(status)
    type(choir_replica), intent(inout) :: r
    type(c_ptr), value :: user
    integer(c_int) :: status
    status = CHOIR_OK
    if (choir_replica_id(r) == 1) status = choir_fail_text(CHOIR_IO, "100 % no valve" // c_null_char)
  end function

  function passing(r, user) bind(c) result(status)
    type(choir_replica), intent(inout) :: r
    type(c_ptr), value :: user
    integer(c_int) :: status
    status = choir_replica_return(r, "x" // c_null_char, choir_replica_arg(r, "x" // c_null_char))
  end function

  function stopping(e, user) bind(c) result(status)
    type(choir_fit_event), intent(in) :: e
    type(c_ptr), value :: user
    integer(c_int) :: status
    status = CHOIR_NOT_FOUND
  end function
end module

program arrays
  use steps
  implicit none
  real(c_float), target :: a(3, 4)
  real(c_double), target :: cube(2, 3, 4)
  integer(c_int32_t), target :: empty(0, 5)
  type(c_ptr) :: frame, t
  type(choir_shape), pointer :: s
  real(c_float), pointer :: x(:)
  type(choir_optimizer_options) :: wrong
  type(choir_axes) :: sets(3)
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
  sets = [choir_axis(2), choir_axis(-1), choir_axes_of(2, [0, 2])]
  call need(all(sets%bits == [4, int(ishft(1, 31)), 5]), "sets of axes")
  call choir_frame_clear(frame)
  call need_shape(choir_sum(choir_array(frame, cube), sets(3)), [3])
  call back(frame)
  call choir_frame_free(frame)
  call strategies()
contains
  ! Tensors as arrays; what has another kind or order is refused, and the array stays.
  subroutine back(frame)
    type(c_ptr), intent(in) :: frame
    type(c_ptr) :: t
    real(c_float) :: same(2, 3), turned(3, 2), wide(4, 6)
    real(c_double) :: doubles(2, 3)
    integer(c_int32_t) :: line(6), none(0, 5)
    t = choir_array(frame, reshape([(real(i), i = 1, 6)], [2, 3]))
    call choir_must(choir_tensor_to_array(t, same))
    call need(all(same == reshape([1., 2., 3., 4., 5., 6.], [2, 3])), "the same order")
    wide = 7
    call choir_must(choir_tensor_to_array(t, wide(1:4:2, 2:6:2))) ! not contiguous
    call need(all(wide(1:4:2, 2:6:2) == same) .and. count(wide == 7) == 18, "a part of an array")
    turned = 8
    call need(choir_tensor_to_array(t, turned) == CHOIR_INVALID .and. all(turned == 8), "another order")
    call need(index(choir_text(choir_error()), "array: it is f32 (3, 2); the tensor needs f32 (2, 3)") == 1, &
        "its text: " // choir_text(choir_error()))
    call need(choir_tensor_to_array(t, doubles) == CHOIR_INVALID, "f64")
    call need(index(choir_text(choir_error()), "f64 (2, 3); the tensor needs f32 (2, 3)") > 0, choir_text(choir_error()))
    call need(choir_tensor_to_array(t, line) == CHOIR_INVALID, "i32 of one axis")
    call need(index(choir_text(choir_error()), "i32 (6); the tensor needs f32 (2, 3)") > 0, choir_text(choir_error()))
    call choir_must(choir_tensor_to_array(choir_array(frame, empty), none))
    call need(choir_tensor_to_array(c_null_ptr, same) /= CHOIR_OK, "no tensor")
  end subroutine

  ! A failure of one replica ends the run with its text, and the strategy stays usable.
  subroutine strategies()
    type(choir_strategy_options) :: two
    type(choir_scope) :: scope
    type(choir_model_options) :: m
    type(choir_fit_options) :: f
    type(choir_callback), target :: called
    type(c_ptr) :: s, batch, results = c_null_ptr, model
    two%replicas = 2
    s = choir_mirrored_strategy_new(two)
    batch = choir_values_new(s)
    call choir_must(choir_values_split(batch, "x" // c_null_char, choir_array(choir_values_frame(batch), cube)))
    call need(choir_strategy_run(s, c_funloc(failing), c_null_ptr, batch, results) == CHOIR_IO, "a failing replica")
    call need(index(choir_text(choir_error()), "100 % no valve") > 0, "its text: " // choir_text(choir_error()))
    call choir_must(choir_strategy_run(s, c_funloc(passing), c_null_ptr, batch, results))
    call need_shape(choir_value_local(choir_values_find(results, "x" // c_null_char), 1_c_int), [2, 3, 2])
    call need(choir_strategy_run(s, c_null_funptr, c_null_ptr, batch, results) == CHOIR_INVALID, "no function")
    call choir_must(choir_scope_enter(scope, s))
    m%layer = choir_dense_new("d" // c_null_char, 2_c_int64_t, 2_c_int64_t, CHOIR_LINEAR)
    m%optimizer = choir_optimizer_new(CHOIR_ADAM)
    m%loss = c_funloc(choir_mean_squared_error)
    model = choir_model_new(m)
    call choir_must_have(model)
    call choir_must(choir_scope_exit(scope))
    called%batch_end = c_funloc(stopping)
    f%callbacks = c_loc(called)
    f%n_callbacks = 1
    call need(choir_fit(model, dataset(s), f) == CHOIR_NOT_FOUND, "a failing callback")
    call need(index(choir_text(choir_error()), "batch 1") > 0, "its place: " // choir_text(choir_error()))
    call choir_must(choir_evaluate(model, dataset(s)))
    call choir_values_free(results)
    call choir_values_free(batch)
    call choir_strategy_free(s)
  end subroutine

  function dataset(s)
    type(c_ptr), intent(in) :: s
    type(c_ptr) :: dataset
    real(c_float), target :: x(2, 4)
    type(choir_array_column) :: columns(2)
    columns = [choir_array_column("x", x), choir_array_column("y", x)]
    x = 1
    columns(2) = choir_array_column("y", x(:, :3))
    call need_no_dataset(columns, 'column "y": the last axis of the array has 3 examples; the first column has 4')
    columns(2) = choir_array_column("y", x(:, 1:4:3))
    call need_no_dataset(columns, 'column "y": the array is not contiguous')
    columns(2) = choir_array_column(repeat("y", 300), x)
    call need_no_dataset(columns, "255 letters")
    call need_no_dataset(columns(1:0), "dataset")
    columns(2) = choir_array_column("y", x)
    dataset = choir_strategy_distribute_dataset(s, choir_dataset_batch(choir_array_dataset_new(columns, .true.), 4_c_int64_t))
  end function

  subroutine need_no_dataset(columns, text)
    type(choir_array_column), intent(in) :: columns(:)
    character(*), intent(in) :: text
    call need(.not. c_associated(choir_array_dataset_new(columns, .true.)), text)
    call need(choir_error_status() == CHOIR_INVALID, "its status")
    call need(index(choir_text(choir_error()), text) > 0, choir_text(choir_error()))
  end subroutine

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

"""Operations: what a pass, a step, a generation and a training compute."""
